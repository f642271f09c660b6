import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("slack"),
  app_token: z.string().default(""),
  bot_token: z.string().default(""),
});

export const SLACK = defineManifest({
  kind: "slack",
  settings,
  secrets: ["app_token", "bot_token"],
  // Slack shows 4,000 characters well. Marks need some of them.
  limits: { characters: 3_500, fileBytes: 1_000_000_000 },
  async load() {
    const { createSlack } = await load<typeof import("./slack.ts")>("./slack.ts", import.meta.url);
    return createSlack;
  },
});
