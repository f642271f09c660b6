/**
 * V8 options of the executable and of programs in tests: the heap grows threefold at most between two collections, and the
 * young generation starts at 4 MB (decision 0029).
 */
export const V8_FLAGS = "--v8-flags=--heap-growing-percent=200,--min-semi-space-size=4";
