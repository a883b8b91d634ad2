#!/usr/bin/env bash
# A test that leaks must fail. Usage: tests/leaks/check_found.sh PROGRAM
if "$1" >/dev/null 2>&1; then
  echo "a test that leaks passed: see tests/lsan_parent.c" >&2
  exit 1
fi
