import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { commonSettings, defineManifest, optionalAddress } from "../manifest.ts";

const settings = z.strictObject({
  ...commonSettings,
  kind: z.literal("dingtalk"),
  client_id: z.string().default(""),
  client_secret: z.string().default(""),
  /** "": the client id. */
  robot_code: z.string().default(""),
  /** Id of a template from the card editor. Buttons need one. */
  card_template: z.string().default(""),
  /** Address of the older interface, which stores files. "" means base_url. */
  oapi_url: optionalAddress,
});

export const DINGTALK = defineManifest({
  kind: "dingtalk",
  settings,
  secrets: ["client_secret"],
  guide: {
    title: "DingTalk",
    steps: [
      "Create an internal app on open-dev.dingtalk.com, add a robot in Stream Mode, and publish it.",
      "Its page Credentials has the Client ID and the Client Secret.",
    ],
    lines: [
      "ding:",
      "  kind: dingtalk",
      "  client_id: dingabcdef",
      "  client_secret_file: /etc/svc/dingtalk.secret",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // A message has 3,800 characters. The format adds blanks at the ends of lines.
  limits: { characters: 3_000, fileBytes: 20_000_000 },
  async load() {
    const { createDingTalk } = await load<typeof import("./dingtalk.ts")>("./dingtalk.ts", import.meta.url);
    return createDingTalk;
  },
});
