"""The Python examples of docs/embedding.md print what they show."""

import doctest
import unittest


class Examples(unittest.TestCase):
    def test_embedding(self):
        with open("docs/embedding.md", encoding="utf-8") as file:
            text = file.read()
        test = doctest.DocTestParser().get_doctest(text, {}, "embedding.md", "docs/embedding.md", 0)
        self.assertGreater(len(test.examples), 15)
        result = doctest.DocTestRunner().run(test)
        self.assertEqual(result.failed, 0)


if __name__ == "__main__":
    unittest.main()
