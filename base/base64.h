// Base64 (RFC 4648, section 4, with padding): binary data inside text forms.
#ifndef BERTH_BASE_BASE64_H_
#define BERTH_BASE_BASE64_H_

#include "base/str.h"

// Appends the encoding of data[0, size_bytes).
void berth_base64_encode(const void *data, size_t size_bytes, berth_strbuf *out);

// Decodes text[0, length), appending to `out`, 3 bytes for every 4 characters. White space is
// skipped. False when the text is not base64 (then `out` holds a part).
bool berth_base64_decode(const char *text, size_t length, berth_strbuf *out);

#endif  // BERTH_BASE_BASE64_H_
