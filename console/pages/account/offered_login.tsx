import { acceptLogin, offeredLogin, username } from "../../live/session.ts";
import { Dialog } from "../../parts/dialog.tsx";

/** Asks before a link replaces the session of this browser with one of another user. */
export function OfferedLogin() {
  const offer = offeredLogin.value;
  if (offer === null) return null;
  const decline = () => offeredLogin.value = null;
  return (
    <Dialog title="Sign in as another user?" onClose={decline}>
      <p>
        This link <bdi>{offer.text}</bdi>. You are signed in as <bdi>{username.value}</bdi>.
      </p>
      <p>
        Continue only if you opened the link yourself. Your messages and files then belong to the other user.
      </p>
      <div class="actions end">
        <button type="button" onClick={decline}>Stay signed in as {username.value}</button>
        <button type="button" class="danger" onClick={() => void acceptLogin()}>
          Sign in as another user
        </button>
      </div>
    </Dialog>
  );
}
