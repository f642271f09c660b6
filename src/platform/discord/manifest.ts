import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("discord"),
  token: z.string().default(""),
});

export const DISCORD = defineManifest({
  kind: "discord",
  settings,
  secrets: ["token"],
  guide: {
    title: "Discord",
    steps: [
      "Create an application on discord.com/developers/applications. Its page Bot has the token.",
      "On the same page, turn on Message Content Intent. Then invite the bot to your server.",
    ],
    lines: [
      "guild:",
      "  kind: discord",
      "  token_file: /etc/svc/discord.token",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // Discord takes 2,000 characters. Escaped marks need some of them.
  limits: { characters: 1_800, fileBytes: 10_000_000 },
  async load() {
    const { createDiscord } = await load<typeof import("./discord.ts")>("./discord.ts", import.meta.url);
    return createDiscord;
  },
});
