# SPDX-License-Identifier: LGPL-2.1-or-later
"""Act=cpuset on a host whose cpuset controller is on version 1, in a test cgroup: confined at home, restored at the
stop, after a crash, and when the policy goes. Lending suspends it: test-daemon-lend.py."""

import os
import resource
import signal
import subprocess
import sys

import fencelib
import lib


class Fence(fencelib.FenceTest):
    def test_up_and_put_back(self):
        work, daemon = self.placed()
        self.assertEqual(daemon.ctl("status")["fences_up"], 1)
        self.assertIn("Means", daemon.ctl_run("explain", str(work.pid)).stdout)
        # A process that joins from outside is confined, so it is at home at once, and is restored as well. Its own
        # mask is visible without the confinement, which the daemon therefore lifts once it sees the process: not
        # before the masks have been compared.
        daemon.process.send_signal(signal.SIGSTOP)
        late = self.inside()
        home = work.masks()
        self.assertEqual(late.masks(), home)
        daemon.process.send_signal(signal.SIGCONT)
        self.wait_back()
        lib.wait_until("the fence again", lambda: {self.cpus()} == home)
        self.assertEqual(late.masks() | work.masks(), home)
        daemon.stop()
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks() | late.masks(), {self.full})

    def test_crash(self):
        work, daemon = self.placed()
        daemon.kill()
        self.assertNotEqual(self.cpus(), self.before)
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks(), {self.full})

    def test_changed_by_somebody_else(self):
        """A cpuset that somebody else sets is the outer limit from then on, and what is restored."""
        work, daemon = self.placed(Steal={"Steal": "no"})
        home = sorted(set(lib.own_cpus()) & set(os.sched_getaffinity(work.pid)))
        theirs = self.list_of(home[:1] + [lib.own_cpus()[-1]])
        (self.cgroup / "cpuset.cpus").write_text(theirs, encoding="ascii")
        self.wait_means(daemon, work, "affinity", "foreign")
        self.assertEqual(self.cpus(), theirs)
        lib.wait_until("its home inside", lambda: work.masks() == {self.list_of(home[:1])})
        daemon.stop()
        self.assertEqual(self.cpus(), theirs)
        self.assertEqual(work.masks(), {theirs})

    def test_not_alone(self):
        """A process without a policy is in the cgroup, so the cgroup is not confined. The other is still placed, by
        masks."""
        self.policy()
        procs = self.cgroup / "cgroup.procs"
        self.spinner("--asleep", mark="other", preexec_fn=lambda: procs.write_text("0", encoding="ascii"))
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_means(daemon, work, "affinity", "shared")
        self.wait_home(daemon, work)
        self.assertEqual(self.cpus(), self.before)
        daemon.stop()
        self.assertEqual(work.masks(), {self.full})

    def make_below(self):
        """A cgroup in the confined one, and one in that: both begin with the list of their parent."""
        below = self.cgroup / "below" / "deeper"
        for cgroup in (below.parent, below):
            cgroup.mkdir()
            self.addCleanup(cgroup.rmdir)
        return below.parent, below

    def check_below(self, end):
        """Cgroups made during the confinement get the same list as the parent after it."""
        (self.cgroup / "cgroup.clone_children").write_text("1", encoding="ascii")
        work, daemon = self.placed()
        made = [cgroup / "cpuset.cpus" for cgroup in self.make_below()]
        self.assertEqual({file.read_text(encoding="ascii").strip() for file in made}, {self.cpus()})
        end(daemon)
        self.assertEqual({file.read_text(encoding="ascii").strip() for file in made}, {self.before})
        self.assertEqual(self.cpus(), self.before)

    def test_made_below(self):
        self.check_below(lambda daemon: daemon.stop())

    def crash(self, daemon):
        daemon.kill()
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)

    def test_made_below_and_crash(self):
        self.check_below(self.crash)

    def test_made_again(self):
        """A cgroup that somebody made anew, which by chance has the daemon's list, is foreign."""
        work, daemon = self.placed()
        ours = self.cpus()
        daemon.kill()
        work.end()
        self.remove()
        self.cgroup.mkdir()
        self.fill(self.cgroup)
        (self.cgroup / "cpuset.cpus").write_text(ours, encoding="ascii")
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.assertEqual(self.cpus(), ours)

    def check_renamed(self, end):
        """Somebody renames the cgroup: it is restored under its new name."""
        work, daemon = self.placed()
        self.cgroup = self.cgroup.rename(self.cgroup.with_name(f"{self.cgroup.name}-renamed"))
        end(daemon)
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks(), {self.full})

    def test_renamed(self):
        self.check_renamed(lambda daemon: daemon.stop())

    def test_renamed_and_crash(self):
        self.check_renamed(self.crash)

    def test_renamed_to_and_fro(self):
        """A cgroup that is renamed during the search has not been removed. A failed restore is reported, and repeated
        later."""
        self.policy()
        for crash in 4 * (False, True):
            work = self.inside()
            daemon = self.daemon().ready()
            self.wait_up(daemon, work)
            names = [str(self.cgroup), f"{self.cgroup}-renamed"]
            script = "import os, sys\nwhile True:\n os.rename(*sys.argv[1:])\n os.rename(*sys.argv[:0:-1])"
            mover = subprocess.Popen([sys.executable, "-c", script, *names])
            self.addCleanup(mover.wait)
            self.addCleanup(mover.kill)
            lib.wait_until("it to be put back", lambda daemon=daemon, work=work: self.means(daemon, work)[1] != "up")
            if crash:
                daemon.kill()
                daemon = self.daemon("--restore")
            else:
                daemon.process.terminate()
            status = daemon.process.wait(lib.DEADLINE_SEC)
            mover.kill()
            mover.wait()
            if os.path.exists(names[1]):
                os.rename(*names[::-1])
            if status == lib.NOT_RESTORED:
                self.crash(daemon)
            else:
                self.assertEqual(status, 0, daemon.log())
            self.assertEqual(self.cpus(), self.before)
            work.end()

    def test_chosen_while_down(self):
        """The home's CPUs as a foreign choice: the first one ends the confinement, the second one is kept as well."""
        work, daemon = self.placed()
        home = self.cpus()
        (self.cgroup / "cpuset.cpus").write_text(self.before, encoding="ascii")
        self.wait_means(daemon, work, "affinity", "foreign")
        (self.cgroup / "cpuset.cpus").write_text(home, encoding="ascii")
        daemon.stop()
        self.assertEqual(self.cpus(), home)

    def test_out_of_sight(self):
        """--restore where the hierarchy is not mounted: invisible cgroups stay in the journal."""
        work, daemon = self.placed()
        daemon.kill()
        hidden = self.daemon("--restore", wrap=["unshare", "--mount", "sh", "-c", f'umount {self.controller}; exec "$@"', "sh"])
        hidden.fails(lib.NOT_RESTORED, "it stays in the undo journal")
        self.crash(daemon)
        self.assertEqual(self.cpus(), self.before)

    def test_thread_elsewhere(self):
        """On version 1 a thread can be in another cgroup than its process. Its cpuset, which leaves nothing of the
        home, is its own."""
        self.policy(Workload={"Act": "affinity"}, Steal={"Steal": "no"})
        other = self.cgroup / "other"
        other.mkdir()
        self.addCleanup(other.rmdir)
        self.fill(other)
        work = self.inside()
        self.addCleanup(work.end)
        (other / "tasks").write_text(str(max(lib.affinity(work.pid))), encoding="ascii")
        daemon = self.daemon().ready()
        home = self.wait_home(daemon, work)
        (other / "cpuset.cpus").write_text(self.list_of(set(lib.own_cpus()) - set(os.sched_getaffinity(work.pid))), encoding="ascii")
        self.assertNotEqual(work.masks(), home)
        self.crash(daemon)
        (other / "cpuset.cpus").write_text(self.before, encoding="ascii")
        self.assertEqual(work.masks(), {self.full})

    def bearer(self):
        """A process in the cgroup that forks a child on request, matched by the policy or not."""
        procs = self.cgroup / "cgroup.procs"
        parent = subprocess.Popen(["sh", "-c", "while read mark; do NUMAPLACE_TEST=$mark sleep 1000 >/dev/null & echo $!; done"],
                                  env={**os.environ, "NUMAPLACE_TEST": self.mark}, text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, preexec_fn=lambda: procs.write_text("0", encoding="ascii"))
        for pipe in (parent.stdin, parent.stdout):
            self.addCleanup(pipe.close)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        return parent

    def child(self, parent, mark):
        parent.stdin.write(f"{mark}\n")
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return pid

    def check_born_in_fence(self, end):
        """A process that joins during the confinement has the home as its mask, and mostly counts as pinned. Its
        children have the daemon's mask."""
        work, daemon = self.placed(Steal={"Steal": "no"})
        parent = self.bearer()
        lib.wait_until("it to be placed", lambda: f"mask pid={parent.pid} " in self.journal.read_text(encoding="ascii"))
        children = [self.child(parent, mark) for mark in (self.mark, "other")]
        self.ticks(daemon)
        end(daemon)
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(set().union(*(lib.affinity(pid).values() for pid in (parent.pid, work.pid, *children))), {self.full})

    def test_born_in_fence(self):
        self.check_born_in_fence(lambda daemon: daemon.stop())

    def test_born_in_fence_and_crash(self):
        self.check_born_in_fence(self.crash)

    def check_narrowed(self, end):
        """The cpuset becomes what a thread was pinned to, so that the thread's own mask shows. The kernel remembers
        the home, for later."""
        lib.need_masks_kept("the kernel itself forgets the mask")
        self.policy(Workload={"Act": "affinity", "ForeignAffinity": "override"}, Steal={"Steal": "no"})
        work = self.inside()
        pin = set(lib.own_cpus()[-1:])
        for thread in lib.affinity(work.pid):
            os.sched_setaffinity(thread, pin)
        daemon = self.daemon().ready()
        lib.wait_until("it to be at home", lambda: self.list_of(pin) not in work.masks())
        (self.cgroup / "cpuset.cpus").write_text(self.list_of(pin), encoding="ascii")
        end(daemon)
        (self.cgroup / "cpuset.cpus").write_text(self.before, encoding="ascii")
        self.assertEqual(work.masks(), {self.list_of(pin)})

    def test_narrowed_to_what_it_had(self):
        self.check_narrowed(lambda daemon: daemon.stop())

    def test_narrowed_to_what_it_had_and_crash(self):
        self.check_narrowed(self.crash)

    def test_pinned_comes_in(self):
        """Somebody moves a process in whose user has pinned it elsewhere. Its mask is not visible there, and is not
        replaced."""
        lib.need_masks_kept("the kernel itself forgets the mask of who moves")
        work, daemon = self.placed(Steal={"Steal": "no"})
        other = max(set(lib.own_cpus()) - set(os.sched_getaffinity(work.pid)))
        procs = self.cgroup / "cgroup.procs"

        def come_in():
            os.sched_setaffinity(0, {other})
            procs.write_text("0", encoding="ascii")

        pinned = self.spinner("--asleep", "--threads=2", preexec_fn=come_in)
        self.wait_back()
        self.assertEqual(pinned.masks(), {str(other)})
        daemon.stop()
        self.assertEqual(pinned.masks(), {str(other)})
        self.assertEqual(work.masks(), {self.full})

    def test_few_descriptors(self):
        """What cannot be restored for lack of descriptors stays in the journal."""
        work, daemon = self.placed()
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (3, 3))
        daemon.stop(status=lib.NOT_RESTORED)
        self.crash(daemon)
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks(), {self.full})

    def test_paused(self):
        work, daemon = self.placed()
        daemon.ctl("release", "50-test")
        self.wait_back()
        self.wait_full(work)
        daemon.ctl("resume", "50-test")
        self.wait_up(daemon, work)
        daemon.stop()


if __name__ == "__main__":
    lib.main()
