/** Owns: asking for the API's token: for everything, or for an approval alone. */
import { useState, type ReactNode } from "react";
import { MAIN } from "./focus.ts";

export function TokenPrompt({
  wasRefused,
  onToken,
}: {
  readonly wasRefused: boolean;
  /** @param token null: to go on without one */
  readonly onToken: (token: string | null) => void;
}) {
  const [token, setToken] = useState("");
  return (
    <main id={MAIN} tabIndex={-1} className="centred">
      <form
        className="card token"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") onToken(token.trim());
        }}
      >
        <h1>This server asks for a token</h1>
        <p>
          It is the <code>API_TOKEN</code> that the server was started with, a token of your own, or the one
          that <code>npm start</code> shows in its terminal. This tab keeps it until you close it.
        </p>
        <TokenField
          id="token"
          label="Token"
          token={token}
          onChange={setToken}
          problem={wasRefused ? "The server did not accept the token. Check it and try again." : ""}
        />
        <div className="row">
          <button className="primary" type="submit" disabled={token.trim() === ""}>
            Continue
          </button>
          {/* The server may have been started again, with another token for approvals alone. */}
          {wasRefused && (
            <button type="button" onClick={() => onToken(null)}>
              Continue without a token
            </button>
          )}
        </div>
      </form>
    </main>
  );
}

/** @param props.problem a sentence on the token before; empty: there is none */
function TokenField({
  id,
  label,
  token,
  onChange,
  problem,
  children,
}: {
  readonly id: string;
  readonly label: string;
  readonly token: string;
  readonly onChange: (token: string) => void;
  readonly problem: string;
  /** Between the label and the field. */
  readonly children?: ReactNode;
}) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      {children}
      <input
        id={id}
        type="password"
        autoComplete="off"
        autoFocus
        value={token}
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={problem !== ""}
        aria-describedby={`${id}-problem`}
      />
      <p id={`${id}-problem`} role="alert" className="bad">
        {problem}
      </p>
    </>
  );
}

/** @param problem a sentence on the token before; empty: there is none */
export function ApprovalToken({
  problem,
  isSending,
  onToken,
  onCancel,
}: {
  readonly problem: string;
  readonly isSending: boolean;
  readonly onToken: (token: string) => void;
  readonly onCancel: () => void;
}) {
  const [token, setToken] = useState("");
  return (
    <form
      className="token"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "" && !isSending) onToken(token.trim());
      }}
    >
      <TokenField id="approval-token" label="Your token" token={token} onChange={setToken} problem={problem}>
        <p>
          An approval is a person&rsquo;s, so it needs a token. <code>npm start</code> shows it in its
          terminal; a team&rsquo;s owner gives each person one. This tab keeps it until you close it.
        </p>
      </TokenField>
      <div className="row">
        <button type="button" disabled={isSending} onClick={onCancel}>
          Not now
        </button>
        <button className="primary" type="submit" disabled={isSending || token.trim() === ""}>
          {isSending ? "Sending …" : "Decide with it"}
        </button>
      </div>
    </form>
  );
}
