import { SecretOnce } from "../../parts/secret.tsx";
import { CopyButton } from "../../parts/short_id.tsx";

/** The command that starts a runner on its machine, with its token in a file there. */
export function startCommand(): string {
  return `svc runner --url ${location.origin} --token-file runner.token`;
}

interface HandoverProps {
  name: string;
  token: string;
  onClose: () => void;
}

/** The token of a new runner, shown once, and what is done with it on the other machine (contract 18.2). */
export function Handover({ name, token, onClose }: HandoverProps) {
  const command = startCommand();
  return (
    <SecretOnce
      title={`The token of ${name}`}
      text="On that machine, put it into a file that only its user can read, such as runner.token:"
      secret={token}
      onClose={onClose}
    >
      <p>Then start the runner there, and it appears in this list:</p>
      <p class="secret">
        <code>{command}</code>
        <CopyButton text={command} what="command" />
      </p>
      {location.protocol !== "https:" && (
        <p class="hint">
          From another machine the address of this service has to begin with https:, because the token travels
          with each request.
        </p>
      )}
    </SecretOnce>
  );
}
