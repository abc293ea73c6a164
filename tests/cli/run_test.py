"""./run set-up: does nothing twice, finds what is installed, and says plainly what is missing.

Small stand-ins for cargo, rustc, rustup and apt-get come first on the PATH; nothing is installed or downloaded.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parents[2] / "run"


class SetUp(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        self.bin = self.home / "bin"
        self.bin.mkdir()
        self.stand_in("getent", "exit 0")
        self.stand_in("apt-get", f'echo "$@" >> {self.home}/apt; exit 0')
        self.stand_in("apt-cache", "exit 0")
        self.stand_in("rustup", "exit 1")

    def stand_in(self, name, script):
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def rust(self, version):
        for name in ("cargo", "rustc"):
            self.stand_in(name, f'echo "{name} {version} (0000000 2026-01-01)"')

    def set_up(self, **environment):
        models = os.environ.get("REPRISE_MODELS") or os.path.expanduser("~/.cache/reprise/models")
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home), "REPRISE_MODELS": models, **environment}
        return subprocess.run([str(RUN), "set-up"], capture_output=True, text=True, env=env, check=False, timeout=60)

    def test_without_a_display_the_way_to_the_terminal_is_said_and_nothing_is_set_up(self):
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home)}
        done = subprocess.run([str(RUN)], capture_output=True, text=True, env=env, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no display", done.stderr)
        self.assertIn("./run chat", done.stderr)
        self.assertFalse((self.home / "apt").exists())

    def test_with_everything_in_place_nothing_is_installed(self):
        self.rust("1.95.0")
        done = self.set_up()
        self.assertEqual((done.returncode, done.stderr), (0, "everything is set up\n"))
        self.assertFalse((self.home / "apt").exists())

    def test_a_newer_rust_is_as_good(self):
        self.rust("1.100.2-nightly")
        self.assertEqual(self.set_up().returncode, 0)

    def test_a_rust_in_the_home_directory_is_found_off_the_path(self):
        self.rust("1.63.0")
        folder = self.home / ".cargo" / "bin"
        folder.mkdir(parents=True)
        for name in ("cargo", "rustc"):
            (folder / name).write_text(f'#!/bin/sh\necho "{name} 1.96.0"\n')
            (folder / name).chmod(0o755)
        self.assertEqual(self.set_up().stderr, "everything is set up\n")

    def test_a_rust_that_is_too_old_is_said_with_the_remedy(self):
        self.rust("1.63.0")
        done = self.set_up()
        self.assertEqual(done.returncode, 1)
        self.assertIn("Rust 1.95 or newer is missing (found 1.63.0)", done.stderr)
        self.assertIn("error: Rust 1.95 or newer could not be set up. Install it from https://rustup.rs", done.stderr)

    def test_no_home_directory_is_no_trouble(self):
        self.rust("1.95.0")
        self.assertEqual(self.set_up(HOME="").returncode, 0)


if __name__ == "__main__":
    unittest.main()
