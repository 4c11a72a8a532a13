/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The objects on the buses: their paths, the values of their properties, and signals when these change. */

#include "daemon/manager/manager.h"

#include <systemd/sd-bus.h>

/* The workload that the object at a path stands for; NULL: none. */
const Workload *manager_object_workload(Manager *manager, const char *path);

/* For the vtables, with the BusPeer as userdata: sd_bus_object_find_t, sd_bus_node_enumerator_t, and the
 * getters of the properties of the manager and of a workload. */
int manager_object_find(sd_bus *bus, const char *path, const char *interface, void *userdata,
                        void **ret_found, sd_bus_error *error);
int manager_object_list(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes,
                        sd_bus_error *error);
int manager_object_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error);
int manager_object_get_workload(sd_bus *bus, const char *path, const char *interface, const char *property,
                                sd_bus_message *reply, void *userdata, sd_bus_error *error);

/* The counterpart of a group in another World, or NULL. */
typedef const Group *ManagerGroupElsewhere(const Manager *manager, const Group *group);

/* The homes of all groups of a workload together, or with `elsewhere`, of their counterparts: CPUs, or
 * (`nodes`) operating-system numbers of nodes. NULL: out of memory. */
hwloc_bitmap_t manager_object_homes(const Manager *manager, WorkloadIx workload,
                                    ManagerGroupElsewhere *elsewhere, bool nodes);

/* Tells all connections which workloads have come, gone or changed since the last call, and from time to time
 * what was refused. Called after every tick. */
void manager_objects_tell(Manager *manager);
