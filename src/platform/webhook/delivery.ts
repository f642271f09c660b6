import { createHash } from "node:crypto";
import {
  type SignedBody,
  verifyGitea,
  verifyGitHub,
  verifyStandard,
  verifyToken,
} from "../webhook_signature.ts";
import type { Forge } from "../../domain/call/vocabulary.ts";
import type { Reading } from "./event.ts";
import { readGitea } from "./gitea.ts";
import { readGitHub } from "./github.ts";
import { readGitLab } from "./gitlab.ts";

const STANDARD_KEY = /^whsec_/;

/** Whether a secret of a GitLab webhook is its plain token, which does not sign the body. */
export function isPlainToken(forge: Forge, secret: string): boolean {
  return forge === "gitlab" && !STANDARD_KEY.test(secret);
}

/** Checks the signature of a delivery. */
export function isSignedByForge(forge: Forge, secret: string, signed: SignedBody): boolean {
  if (secret === "") return false;
  switch (forge) {
    case "github":
      return verifyGitHub(secret, signed);
    case "gitea":
      return verifyGitea(secret, signed);
    case "gitlab":
      return isPlainToken(forge, secret) ? verifyToken(secret, signed) : verifyStandard(secret, signed);
  }
}

/** Reads the event of a delivery. */
export function readDelivery(
  forge: Forge,
  headers: Readonly<Record<string, string>>,
  body: unknown,
): Reading {
  switch (forge) {
    case "github":
      return readGitHub(headers["x-github-event"] ?? "", body);
    case "gitea":
      return readGitea(headers["x-gitea-event"] ?? "", body);
    case "gitlab":
      return readGitLab(body);
  }
}

/**
 * Returns what identifies a delivery: the signed id, or the bytes of a body whose headers nothing signs (decision 0024). So a replay under
 * another delivery id is the same delivery.
 */
export function findDeliveryId(
  forge: Forge,
  secret: string,
  { headers, body }: Pick<SignedBody, "headers" | "body">,
): string {
  const signedId = headers["webhook-id"] ?? "";
  if (forge === "gitlab" && !isPlainToken(forge, secret) && signedId !== "") return signedId;
  return createHash("sha256").update(body).digest("hex");
}
