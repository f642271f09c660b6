/** What V8 is told when the executable starts, and when a test starts the program: its heap grows by six tenths between two collections (decision 0105). */
export const V8_FLAGS = "--v8-flags=--heap-growing-percent=60";
