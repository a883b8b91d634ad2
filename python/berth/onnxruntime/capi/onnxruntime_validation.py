"""What was installed."""

from berth.onnxruntime import __version__ as version

package_name = "berth-runtime"
cuda_version = ""

__all__ = ["cuda_version", "package_name", "version"]
