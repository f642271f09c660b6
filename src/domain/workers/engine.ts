import { z } from "zod";
import { time } from "../call/field.ts";

export const engineSchema = z.strictObject({
  name: z.string(),
  kind: z.string(),
  default: z.boolean().meta({ description: "whether workers without an engine use this one" }),
  gateway: z.string().meta({ description: "the gateway to its model; empty: its own login" }),
  configured: z.boolean().meta({ description: "whether the configuration names it" }),
  usable: z.boolean().meta({ description: "whether its program is installed and can start" }),
  version: z.string(),
  detail: z.string().meta({ description: "the program found, or what is missing" }),
  live_usage: z.boolean().meta({ description: "whether it reports tokens during a run" }),
  stays_open: z.int().meta({
    description:
      "limit of processes that stay open for the next message of their conversation; 0: each ends after its turn",
  }),
  steers: z.boolean().meta({ description: "whether a run in progress takes further words" }),
  fallback: z.array(z.string()).meta({
    description: "engines that replace it while it is rate limited or cannot be used, best first",
  }),
  permissions: z.enum(["read", "edit", "ask", "full"]).meta({
    description: "what its agents can do without a person; `ask`: a person decides on other tool calls",
  }),
  windows: z.array(z.strictObject({
    name: z.string(),
    utilization: z.number().meta({ description: "used fraction, 0 to 1" }),
    resets_at: time.nullable(),
    seen_at: time,
  })).meta({ description: "quota periods of its provider, as last reported" }),
  limited_until: time.nullable().meta({ description: "end of its provider's rate limit" }),
}).meta({ id: "Engine" });
export type EngineView = z.output<typeof engineSchema>;
