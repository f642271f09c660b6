import { AcpDialogue } from "../protocol/acp_dialogue.ts";
import type { Adapter } from "../protocol/adapter.ts";

/** Any agent that speaks the Agent Client Protocol on stdin and stdout. The configuration names it (decision 0011). */
export const acp: Adapter = {
  driver: "agent",
  kind: "acp",
  program: "",
  tested: null,
  asks: true,
  login: { variables: [], home: "", files: [], advice: "log in with the agent's own command" },
  variables: [],
  reservedFlags: [],
  buildCommand: ({ extraArgs }) => ({ args: [...extraArgs], env: {} }),
  startDialogue: (order, link) => new AcpDialogue(order, link),
  open: {
    buildCommand: (order) => acp.buildCommand(order),
    writesBeforeModel: false,
    showsWork: (text) => /"sessionUpdate":\s*"tool_call"/.test(text),
    startDialogue: (order, link) => new AcpDialogue(order, link, true),
  },
  parseLine: () => [],
  endings: {},
};
