/** Owns: how the arguments of a command divide into options and operands, as getopt_long does it. */

export type Grammar = {
  /** Letters of short options that take a value. */
  readonly short?: string;
  /** Names of long options that take a value. */
  readonly long?: readonly string[];
  /** The first operand ends the options: what follows belongs to another command. */
  readonly stopsAtOperand?: true;
};

export type Option = { readonly name: string; readonly value: string | null };
export type Arguments = { readonly options: readonly Option[]; readonly operands: readonly string[] };

export function parseArguments(args: readonly string[], grammar: Grammar): Arguments {
  const options: Option[] = [];
  const operands: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    const rest = (): string | null => args[++at] ?? null;
    if (arg === "--") return { options, operands: [...operands, ...args.slice(at + 1)] };
    if (arg.startsWith("--")) {
      const [name = "", ...values] = arg.slice(2).split("=");
      const takesNext = values.length === 0 && grammar.long?.includes(name) === true;
      options.push({ name, value: values.length > 0 ? values.join("=") : takesNext ? rest() : null });
    } else if (arg.startsWith("-") && arg !== "-") {
      for (let letter = 1; letter < arg.length; letter++) {
        const name = arg.charAt(letter);
        const takesValue = grammar.short?.includes(name) === true;
        const attached = arg.slice(letter + 1);
        options.push({ name, value: takesValue ? (attached === "" ? rest() : attached) : null });
        if (takesValue) break;
      }
    } else {
      if (grammar.stopsAtOperand === true) return { options, operands: args.slice(at) };
      operands.push(arg);
    }
  }
  return { options, operands };
}

/**
 * Whether an option is among them: by one of its letters, by its long name, or by that name shortened to no less than
 * `least`.
 */
export const has = (options: readonly Option[], letters: string, long: string, least: string): boolean =>
  options.some(({ name }) =>
    name.length === 1 ? letters.includes(name) : long.startsWith(name) && name.startsWith(least),
  );
