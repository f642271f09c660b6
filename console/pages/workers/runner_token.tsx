import { SecretDialog } from "../../parts/secret.tsx";
import { CopyButton } from "../../parts/short_id.tsx";

/** Builds the command that starts a runner on its machine, with its token in a file there. */
export function buildStartCommand(): string {
  return `svc runner --url ${location.origin} --token-file runner.token`;
}

interface TokenProps {
  name: string;
  token: string;
  onClose: () => void;
}

/** Shows the token of a new runner once, with the next steps on its machine. */
export function RunnerTokenDialog({ name, token, onClose }: TokenProps) {
  const command = buildStartCommand();
  return (
    <SecretDialog
      title={`Token of ${name}`}
      text="On the runner's machine, save the token in a file that only its user can read, e.g. runner.token:"
      secret={token}
      onClose={onClose}
    >
      <p>Then start the runner. It appears in this list.</p>
      <p class="secret">
        <code>{command}</code>
        <CopyButton text={command} subject="command" />
      </p>
      {location.protocol !== "https:" && (
        <p class="hint">
          On another machine the URL of this service must start with https:, because each request contains the
          token.
        </p>
      )}
    </SecretDialog>
  );
}
