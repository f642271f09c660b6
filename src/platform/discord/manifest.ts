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
  // Discord takes 2,000 characters. Escaped marks need some of them.
  limits: { characters: 1_800, fileBytes: 10_000_000 },
  async load() {
    const { createDiscord } = await load<typeof import("./discord.ts")>("./discord.ts", import.meta.url);
    return createDiscord;
  },
});
