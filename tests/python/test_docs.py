"""The Python examples of docs/embedding.md and of the package's own texts print what they show."""

import doctest
import importlib
import unittest


class Examples(unittest.TestCase):
    def test_embedding(self):
        with open("docs/embedding.md", encoding="utf-8") as file:
            text = file.read()
        test = doctest.DocTestParser().get_doctest(text, {}, "embedding.md", "docs/embedding.md", 0)
        self.assertGreater(len(test.examples), 15)
        result = doctest.DocTestRunner().run(test)
        self.assertEqual(result.failed, 0)


    def test_package(self):
        import berth
        count = 0
        for name in ("__init__", "_arrays", "_model", "_plan", "_program", "_runner", "onnxruntime"):
            module = berth if name == "__init__" else importlib.import_module("berth." + name)
            result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
            self.assertEqual(result.failed, 0, name)
            count += result.attempted
        self.assertGreater(count, 12)


if __name__ == "__main__":
    unittest.main()
