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
  askTimeoutMs: 60_000,
  mask: (text) => text,
  extraArgs: [],
  root: false,
  env: {},
  tools: null,
  gateway: null,
  servers: [],
  skills: null,
  schema: null,
};
