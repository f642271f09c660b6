// The kinds of engines, one line each. Each `svc ctl config` loads them, so adapters must not import slow modules.
export { acp } from "./adapters/acp.ts";
export { claude } from "./adapters/claude.ts";
export { codex } from "./adapters/codex.ts";
export { command } from "./adapters/command.ts";
export { copilot } from "./adapters/copilot.ts";
export { echo } from "./adapters/echo.ts";
export { gemini } from "./adapters/gemini.ts";
export { goose } from "./adapters/goose.ts";
export { opencode } from "./adapters/opencode.ts";
export { qwen } from "./adapters/qwen.ts";
