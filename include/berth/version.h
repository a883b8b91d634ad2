// The version of Berth that a program is compiled with, and of the library that it runs with.
//
// Versions with the same BERTH_VERSION_MAJOR and BERTH_VERSION_MINOR have the same binary interface
// (the libraries' soname says so): a program runs with any later patch without being compiled again.
#ifndef BERTH_VERSION_H_
#define BERTH_VERSION_H_

// What libraries export. Everything that a header of this folder declares has C linkage.
#ifdef __cplusplus
#define BERTH_BEGIN extern "C" {
#define BERTH_END }
#else
#define BERTH_BEGIN
#define BERTH_END
#endif
#if defined(__GNUC__)
#define BERTH_API __attribute__((visibility("default")))
#define BERTH_MUST_USE __attribute__((warn_unused_result))
#else
#define BERTH_API
#define BERTH_MUST_USE
#endif

#define BERTH_VERSION_MAJOR 0
#define BERTH_VERSION_MINOR 1
#define BERTH_VERSION_PATCH 0
#define BERTH_VERSION "0.1.0"

BERTH_BEGIN

// The library's version, as "0.1.0".
//   threads: thread-safe
BERTH_API const char *berth_version(void);

BERTH_END

#endif  // BERTH_VERSION_H_
