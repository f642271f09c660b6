import { DingTalkWorld } from "./dingtalk.ts";
import { DiscordWorld } from "./discord.ts";
import { FeishuWorld } from "./feishu.ts";
import { SlackWorld } from "./slack.ts";
import { TelegramWorld } from "./telegram.ts";
import { WebhookWorld } from "./webhook.ts";
import { WeComWorld } from "./wecom.ts";

/** Worlds by the kind of their platform. */
export const WORLDS = {
  telegram: TelegramWorld,
  slack: SlackWorld,
  feishu: FeishuWorld,
  dingtalk: DingTalkWorld,
  discord: DiscordWorld,
  wecom: WeComWorld,
  webhook: WebhookWorld,
};
