/** What V8 is told at each start of the program, compiled or by a test: its heap grows by a third at most between two collections (decision 0105). */
export const V8_FLAGS = "--v8-flags=--heap-growing-percent=30";
