// Token counts that every answer of the model reports, so that a test can check what an engine counts.
export const USAGE = { freshInput: 100, cacheWrite: 20, cacheRead: 30, text: 30, thinking: 10 };
export const IN_TOTAL = USAGE.freshInput + USAGE.cacheWrite + USAGE.cacheRead;
export const OUT_TOTAL = USAGE.text + USAGE.thinking;
