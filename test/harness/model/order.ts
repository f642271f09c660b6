import type { Order } from "../../../src/engine/protocol/adapter.ts";

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
  gateway: null,
  schema: null,
};
