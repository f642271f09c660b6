/** The answers of `svc mcp` before a run. They depend on scopes alone. */
export interface ServerDescription {
  /** The answers to `initialize`, by the version of the protocol. */
  initialize: Record<string, unknown>;
  /** The answer to `tools/list`. */
  tools: unknown;
}
