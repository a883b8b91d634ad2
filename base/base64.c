#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void berth_base64_encode(const void *data, size_t size_bytes, berth_strbuf *out) {
    const unsigned char *at = data;
    while (size_bytes > 0) {
        enum { step = 768 };  // whole groups of three, so that padding comes last only
        char text[step / 3 * 4];
        size_t taken = size_bytes < step ? size_bytes : step;
        size_t length = 0;
        for (size_t i = 0; i < taken; i += 3) {
            size_t left = taken - i;
            uint32_t bits = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) |
                            (left > 2 ? at[i + 2] : 0u);
            text[length++] = digits[bits >> 18];
            text[length++] = digits[bits >> 12 & 63];
            text[length++] = left > 1 ? digits[bits >> 6 & 63] : '=';
            text[length++] = left > 2 ? digits[bits & 63] : '=';
        }
        berth_strbuf_add_n(out, text, length);
        at += taken;
        size_bytes -= taken;
    }
}

static int digit_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool berth_base64_decode(const char *text, size_t length, berth_strbuf *out) {
    uint32_t bits = 0;
    int count = 0;    // digits of the group, padding included
    int padding = 0;  // of them
    for (size_t i = 0; i < length; ++i) {
        char c = text[i];
        if (is_space(c)) continue;
        int value = digit_value(c);
        if (c == '=' && count >= 2)
            padding++;
        else if (value < 0 || padding)
            return false;
        bits = bits << 6 | (uint32_t)(value < 0 ? 0 : value);
        if (++count < 4) continue;
        const char bytes[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        if ((padding == 1 && (bits & 0xff)) || (padding == 2 && (bits & 0xffff))) return false;
        berth_strbuf_add_n(out, bytes, (size_t)(3 - padding));
        if (padding) {  // only white space may follow
            for (++i; i < length; ++i)
                if (!is_space(text[i])) return false;
            return true;
        }
        bits = 0;
        count = 0;
    }
    return count == 0;
}
