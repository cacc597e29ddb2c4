/** Owns: the inline parts of a text as React elements. Each kind of element is named here; no HTML is ever parsed. */
import { Fragment, type ReactElement, type ReactNode } from "react";
import { isAddress, shownAddress, targetOf } from "./address.ts";
import { isInvisible, showHidden, showHiddenInProse } from "./hidden-characters.tsx";
import type { Inline } from "./model.ts";

/** @param inLink a link holds no other link */
export const inlineNodes = (inlines: readonly Inline[], inLink = false): ReactNode[] =>
  inlines.map((inline, at) => <Fragment key={at}>{inlineNode(inline, inLink)}</Fragment>);

function inlineNode(inline: Inline, inLink: boolean): ReactNode {
  if (typeof inline === "string") return showHiddenInProse(inline);
  switch (inline.kind) {
    case "emphasis":
      return <em>{inlineNodes(inline.children, inLink)}</em>;
    case "strong":
      return <strong>{inlineNodes(inline.children, inLink)}</strong>;
    case "deleted":
      return <del>{inlineNodes(inline.children, inLink)}</del>;
    case "code":
      return <code>{showHidden(inline.text)}</code>;
    case "break":
      return <br />;
    case "link":
      return <Link address={inline.address} text={inline.children} inLink={inLink} />;
    case "image":
      return <ImageAddress address={inline.address} text={inline.text} inLink={inLink} />;
  }
}

type Text = { readonly address: string; readonly text: readonly Inline[]; readonly inLink: boolean };

/** A link shows where it leads. What must not be a link shows its address as text. */
function Link({ address, text, inLink }: Text): ReactElement {
  const target = targetOf(address);
  const plain = text.every((inline) => typeof inline === "string") ? text.join("") : null;
  if (target === null || inLink)
    return (
      <>
        {inlineNodes(text, true)}
        {plain !== address && address !== "" && <Place text={shownAddress(address)} />}
      </>
    );
  return (
    <>
      <a href={target.href} title={target.href} rel="noopener noreferrer" target="_blank">
        {plain !== null && isInvisible(plain) ? target.href : inlineNodes(text, true)}
      </a>
      {(plain === null || !isAddress(plain, target)) && <Place text={target.place} />}
    </>
  );
}

type Image = { readonly address: string; readonly text: string; readonly inLink: boolean };

/** An image is not loaded: its address may carry what somebody wants to know. It is shown, and may be a link. */
function ImageAddress({ address, text, inLink }: Image): ReactElement {
  const target = targetOf(address);
  return (
    <span className="md-image">
      Image{text === "" ? "" : <> “{showHiddenInProse(text)}”</>}:{" "}
      {target === null || inLink ? (
        <span className="md-address">{showHidden(shownAddress(target?.href ?? address))}</span>
      ) : (
        <a href={target.href} rel="noopener noreferrer" target="_blank">
          {target.href}
        </a>
      )}
    </span>
  );
}

const Place = ({ text }: { readonly text: string }): ReactElement => (
  <span className="md-address"> ({showHidden(text)})</span>
);
