"""Puts Berth's shared libraries into the package: those of BERTH_LIBRARY_DIR, or built from this tree."""

import os
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

ROOT = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = ["libberth.so", "libberth-compiler.so"]

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel


def version():
    with open(os.path.join(ROOT, "include", "berth", "version.h"), encoding="utf-8") as file:
        return re.search(r'#define BERTH_VERSION "([^"]+)"', file.read()).group(1)


def built_libraries():
    given = os.environ.get("BERTH_LIBRARY_DIR")
    if given:
        return given
    folder = os.path.join(ROOT, "build", "wheel")
    subprocess.check_call(["cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DBERTH_TESTS=OFF"])
    subprocess.check_call(["cmake", "--build", folder, "--target", "libberth_compiler", "--parallel", str(os.cpu_count() or 1)])
    return folder


class BuildWithLibraries(build_py):
    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "berth", "lib")
        os.makedirs(target, exist_ok=True)
        folder, major_minor = built_libraries(), ".".join(version().split(".")[:2])
        for name in LIBRARIES:
            path = os.path.join(target, f"{name}.{major_minor}")
            shutil.copyfile(os.path.join(folder, f"{name}.{major_minor}"), path)
            if shutil.which("strip"):
                subprocess.check_call(["strip", "--strip-unneeded", path])


class PlatformWheel(bdist_wheel):
    """For any Python 3 of this platform: the libraries use none of Python's."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibraries(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel}, distclass=WithLibraries)
