import { DINGTALK } from "./dingtalk/manifest.ts";
import { DISCORD } from "./discord/manifest.ts";
import { EMAIL } from "./email/manifest.ts";
import { FEISHU } from "./feishu/manifest.ts";
import { SLACK } from "./slack/manifest.ts";
import { TELEGRAM } from "./telegram/manifest.ts";
import { WEBHOOK } from "./webhook/manifest.ts";
import { WECOM } from "./wecom/manifest.ts";

/** Manifests of all kinds but `local`, which has no settings. */
export const MANIFESTS = [WEBHOOK, TELEGRAM, SLACK, FEISHU, DINGTALK, DISCORD, WECOM, EMAIL] as const;
