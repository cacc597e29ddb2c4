/**
 * Owns: rendering a long list of nodes of which only the last changes: in groups, so that a change costs a group, and
 * not the list.
 */
import { memo, type CSSProperties, type ReactElement } from "react";

/** Nodes in a group. */
export const GROUP = 16;

type Box<Node> = (
  group: readonly Node[],
  groups: number,
) => { readonly className: string; readonly style?: CSSProperties };
type Render<Node> = (node: Node, index: number) => ReactElement;

/**
 * @param props.from the first node that is rendered, a multiple of GROUP
 * @param props.box what the element around each group gets; there is none unless given
 * @param props.render makes an element with a key; the same function each time
 */
export function Grouped<Node>({
  nodes,
  from = 0,
  box,
  render,
}: {
  readonly nodes: readonly Node[];
  readonly from?: number;
  readonly box?: Box<Node>;
  readonly render: Render<Node>;
}): ReactElement[] {
  const groups = Math.ceil((nodes.length - from) / GROUP);
  return Array.from({ length: groups }, (_, index) => {
    const first = from + index * GROUP;
    const group = nodes.slice(first, first + GROUP);
    const elements = <Group key={first} group={group} first={first} render={render as Render<unknown>} />;
    return box === undefined ? (
      elements
    ) : (
      <div key={first} {...box(group, groups)}>
        {elements}
      </div>
    );
  });
}

type GroupProps = {
  readonly group: readonly unknown[];
  readonly first: number;
  readonly render: Render<unknown>;
};

const Group = memo(
  function Group({ group, first, render }: GroupProps) {
    return group.map((node, at) => render(node, first + at));
  },
  (before, after) =>
    before.render === after.render &&
    before.first === after.first &&
    before.group.length === after.group.length &&
    before.group.every((node, at) => node === after.group[at]),
);
