# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first boot of the case `service`: the package is installed, and everything is prepared for the next boot."""

import pathlib
import unittest

import servicelib as service
import tap


class Install(unittest.TestCase):
    def test_install(self):
        """The service runs at once, and does nothing as long as there is no policy."""
        service.WORK_FILE.write_text(service.WORK_TEXT, encoding="ascii")
        service.systemctl("daemon-reload")
        service.systemctl("enable", "--now", service.WORK)
        before = service.State()
        service.run("dpkg", "-i", *service.PACKAGES)
        self.assertEqual(service.systemctl("is-enabled", service.DAEMON), "enabled")
        self.assertTrue(service.is_active(service.DAEMON))
        status = service.ask("status")
        self.assertEqual((status["mode"], status["homes"], status["lends"]), ("active", 0, 0))
        self.assertEqual(before.changes(), [])
        service.write_policy(1)
        pathlib.Path("/var/lib/lab-installed").touch()


if __name__ == "__main__":
    tap.main()
