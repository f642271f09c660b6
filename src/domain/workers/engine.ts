import { z } from "zod";
import { time } from "../call/field.ts";

/** An engine as the API shows it (contract 14). */
export const engineSchema = z.strictObject({
  name: z.string(),
  kind: z.string(),
  default: z.boolean().meta({ description: "whether workers without an engine have this one" }),
  configured: z.boolean().meta({ description: "whether the configuration names it" }),
  usable: z.boolean().meta({ description: "whether its program is here and can be started" }),
  version: z.string(),
  detail: z.string().meta({ description: "the program found, or what is missing" }),
  live_usage: z.boolean().meta({ description: "whether it tells its tokens while it runs" }),
  stays_open: z.int().meta({
    description:
      "how many of its processes wait at most for the next message of their conversation; 0: each ends after its turn",
  }),
  windows: z.array(z.strictObject({
    name: z.string(),
    utilization: z.number().meta({ description: "the part that is used, 0 to 1" }),
    resets_at: time.nullable(),
    seen_at: time,
  })).meta({ description: "its provider's own quota periods, as it said last" }),
  limited_until: time.nullable().meta({ description: "until when its provider lets nothing through" }),
}).meta({ id: "Engine" });

export type EngineShown = z.output<typeof engineSchema>;
