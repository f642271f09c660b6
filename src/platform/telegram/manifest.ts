import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("telegram"),
  token: z.string().default(""),
});

export const TELEGRAM = defineManifest({
  kind: "telegram",
  settings,
  secrets: ["token"],
  guide: {
    title: "Telegram",
    steps: ["In Telegram, write /newbot to @BotFather. It answers with the token."],
    lines: [
      "phone:",
      "  kind: telegram",
      "  token_file: /etc/svc/telegram.token",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // Telegram takes 4,096 characters without their marks.
  limits: { characters: 3_600, fileBytes: 50_000_000 },
  async load() {
    const { createTelegram } = await load<typeof import("./telegram.ts")>("./telegram.ts", import.meta.url);
    return createTelegram;
  },
});
