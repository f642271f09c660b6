/**
 * What V8 is told when the executable starts, and when a test starts the program: between two collections its heap grows threefold
 * at most, and its young generation begins at 4 MB (decision 0029).
 */
export const V8_FLAGS = "--v8-flags=--heap-growing-percent=200,--min-semi-space-size=4";
