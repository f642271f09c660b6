import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("feishu"),
  app_id: z.string().default(""),
  app_secret: z.string().default(""),
  /** Feishu and Lark are two services with one interface. */
  domain: z.enum(["feishu", "lark"]).default("feishu"),
});

export const FEISHU = defineManifest({
  kind: "feishu",
  settings,
  secrets: ["app_secret"],
  guide: {
    title: "Feishu or Lark",
    steps: [
      "Create a custom app on open.feishu.cn/app or open.larksuite.com/app, and add the feature Bot.",
      "Its page Credentials has the App ID and the App Secret.",
    ],
    lines: [
      "lark:",
      "  kind: feishu",
      "  app_id: cli_0123456789abcdef",
      "  app_secret_file: /etc/svc/feishu.secret",
      "  domain: feishu   # or lark",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // A card has 30 KB of JSON inside JSON, where one character can take six bytes.
  limits: { characters: 4_500, fileBytes: 30_000_000 },
  async load() {
    const { createFeishu } = await load<typeof import("./feishu.ts")>("./feishu.ts", import.meta.url);
    return createFeishu;
  },
});
