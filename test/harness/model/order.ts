import type { Order } from "../../../src/engine/protocol/adapter.ts";

export const ORDER: Order = {
  sessionId: "",
  resume: false,
  prompt: "Say hello.",
  workDir: "/work",
  inputDir: "/runs/1/input",
  outputDir: "/runs/1/output",
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
