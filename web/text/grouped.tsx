/**
 * Owns: rendering a long list of nodes of which only the last changes: in groups, so that a change costs a group, and
 * not the list.
 */
import { memo, type ReactElement } from "react";

/** Nodes in a group. */
export const GROUP = 32;

type Render<Node> = (node: Node, index: number) => ReactElement;

/**
 * @param props.from the first node that is rendered, a multiple of GROUP
 * @param props.className of an element around each group; none unless given
 * @param props.render the same function each time; its elements need a key
 */
export function Grouped<Node>({
  nodes,
  from = 0,
  className,
  render,
}: {
  readonly nodes: readonly Node[];
  readonly from?: number;
  readonly className?: string;
  readonly render: Render<Node>;
}): ReactElement[] {
  return Array.from({ length: Math.ceil((nodes.length - from) / GROUP) }, (_, index) => {
    const first = from + index * GROUP;
    const group = nodes.slice(first, first + GROUP);
    const props = { group, first, render: render as Render<unknown> };
    return className === undefined ? (
      <Group key={first} {...props} />
    ) : (
      <span className={className} key={first}>
        <Group {...props} />
      </span>
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
