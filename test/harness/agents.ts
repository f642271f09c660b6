/** Path of the fake agent. */
export const FAKE_AGENT = new URL("./fake_agent.sh", import.meta.url).pathname;

/** Engines of tests: `fake` takes its mode from the instruction. */
export function fakeEngines(
  options: { ledger?: string; env?: Record<string, string>; timeout?: string; idle_timeout?: string } = {},
): Record<string, unknown> {
  const { ledger, env = {}, ...limits } = options;
  return {
    default: "fake",
    fake: {
      kind: "command",
      command: FAKE_AGENT,
      env: { ...env, ...(ledger === undefined ? {} : { FAKE_LEDGER: ledger }) },
      ...limits,
    },
  };
}
