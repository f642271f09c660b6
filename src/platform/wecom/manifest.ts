import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("wecom"),
  bot_id: z.string().default(""),
  secret: z.string().default(""),
});

export const WECOM = defineManifest({
  kind: "wecom",
  settings,
  secrets: ["secret"],
  guide: {
    title: "WeCom",
    steps: [
      "In the WeCom admin console, create a Smart Bot manually in API mode with a long connection.",
      "Its page shows the Bot ID and the Secret.",
    ],
    lines: [
      "corp:",
      "  kind: wecom",
      "  bot_id: aibXXXXXXXXXXXX",
      "  secret_file: /etc/svc/wecom.secret",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // WeCom takes 20,480 bytes. A character has up to three.
  limits: { characters: 5_000, fileBytes: 50_000_000 },
  async load() {
    const { createWeCom } = await load<typeof import("./wecom.ts")>("./wecom.ts", import.meta.url);
    return createWeCom;
  },
});
