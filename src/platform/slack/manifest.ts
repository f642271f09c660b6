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
  guide: {
    title: "Slack",
    steps: [
      "Create an app on api.slack.com/apps with Socket Mode, and install it to the workspace.",
      "The app token starts with xapp- and needs connections:write. The bot token starts with xoxb-.",
    ],
    lines: [
      "team:",
      "  kind: slack",
      "  app_token_file: /etc/svc/slack.app",
      "  bot_token_file: /etc/svc/slack.bot",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // Slack shows 4,000 characters well. Marks need some of them.
  limits: { characters: 3_500, fileBytes: 1_000_000_000 },
  async load() {
    const { createSlack } = await load<typeof import("./slack.ts")>("./slack.ts", import.meta.url);
    return createSlack;
  },
});
