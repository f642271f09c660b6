import type { Order } from "../../../src/engine/protocol/adapter.ts";

/** An order of an engine's command, with nothing special in it. */
export const ORDER: Order = {
  sessionId: "",
  resume: false,
  prompt: "Say hello.",
  workDir: "/work",
  runDir: "/runs/1",
  stateDir: "/state",
  ctl: "/bin/svc",
  model: "",
  permissions: "edit",
  extraArgs: [],
  root: false,
  env: {},
  tools: null,
  schema: null,
};
