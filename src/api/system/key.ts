import { randomBytes } from "node:crypto";
import { keyBytes, keyFingerprint } from "../../base/token.ts";
import { prepareWhole } from "../../base/whole_file.ts";
import { conflict } from "../../domain/call/error.ts";
import type { KeyRotated } from "../../domain/system/system.ts";
import { record } from "../../store/events/journal.ts";
import { endEverySignature } from "../../store/account/credential.ts";
import { saveSetting } from "../../store/db/setting.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { refuseRuns } from "./system.ts";

/** Bytes of a signing key that the service makes. */
const KEY_BYTES = 48;

/**
 * POST /api/system/rotate-key: another signing key; every login and every token ends (contract 8.16). Throws `forbidden` for
 * runs, `conflict` while the configuration sets the key, and while runs are open: they hold tokens of the old one.
 */
export async function rotateKey(
  { db, clock, paths, auth, authority }: Deps<"db" | "clock" | "paths" | "auth" | "authority">,
  call: Call,
): Promise<Answer<KeyRotated>> {
  refuseRuns(call, "rotate the signing key");
  if (auth.jwt_secret !== "") {
    throw conflict("Cannot rotate the signing key: auth.jwt_secret sets it; change it there and start again");
  }
  // A version that is still to come would take the place of the one that replaceKey() raises.
  await authority.operatorVersion();
  const secret = randomBytes(KEY_BYTES).toString("base64url");
  const file = await prepareWhole(paths.secretKey, `${secret}\n`);
  const now = clock.now();
  try {
    await db.writeOr(
      [
        ...endEverySignature(now),
        ...(db.remote ? [saveSetting("key_fingerprint", keyFingerprint(keyBytes(secret)))] : []),
        record(now, { kind: "system.key_rotated", actor: call.caller.subject }),
      ],
      () =>
        conflict(
          "Cannot rotate the signing key while runs are open: wait until they have ended, or cancel them",
        ),
    );
  } catch (error) {
    await file.drop();
    throw error;
  }
  // A run that begins from here on gets a token of the new one.
  authority.replaceKey(keyBytes(secret));
  await file.place();
  return answer({ rotated_at: now });
}
