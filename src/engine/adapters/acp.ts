import { AcpDialogue } from "../acp_dialogue.ts";
import type { Adapter } from "../adapter.ts";
import { failureFrom, lastWords } from "../failure.ts";

/** Any agent that speaks the Agent Client Protocol on stdin and stdout. The configuration names it (decision 0011). */
export const acp: Adapter = {
  driver: "agent",
  kind: "acp",
  program: "",
  measured: null,
  install: "",
  plansSession: false,
  counts: { live: false, cost: false },
  login: { variables: [], home: "", files: [], advice: "log in with the agent's own command" },
  variables: [],
  reservedFlags: [],
  command: ({ extraArgs }) => ({
    args: [...extraArgs],
    env: {},
    fixedEnv: {},
    stdin: "",
    files: [],
    usageFile: null,
  }),
  converse: (order, link) => new AcpDialogue(order, link),
  open: {
    command: (order) => acp.command(order),
    speaksFirst: false,
    isWork: (text) => /"sessionUpdate":\s*"tool_call"/.test(text),
    begin: (order, say) => new AcpDialogue(order, { say, close() {}, take() {} }, true),
  },
  events: () => [],
  failureOf: ({ stderr }) => failureFrom(lastWords(stderr), "crashed"),
};
