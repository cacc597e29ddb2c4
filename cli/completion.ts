/** Owns: completion scripts for shells, made from the commands that there are. Pure. */
import type { Command } from "commander";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** A script that the person's shell reads: `bedrock completion bash > …`. */
export function completionFor(shell: Shell, program: Command): string {
  const commands = program.commands.map((command) => ({
    name: command.name(),
    description: command.summary() || command.description(),
    options: command.options.flatMap(({ long }) => long ?? []),
  }));
  const names = commands.map(({ name }) => name).join(" ");
  const cases = commands.map(({ name, options }) => `      ${name}) words="${options.join(" ")}" ;;`);
  switch (shell) {
    case "bash":
      return [
        "_bedrock() {",
        `  local words="${names}"`,
        '  local current="${COMP_WORDS[COMP_CWORD]}"',
        "  if [ $COMP_CWORD -gt 1 ]; then",
        '    case "${COMP_WORDS[1]}" in',
        ...cases,
        '      *) words="" ;;',
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -F _bedrock bedrock",
      ].join("\n");
    case "zsh":
      return [
        "#compdef bedrock",
        "_bedrock() {",
        "  if (( CURRENT == 2 )); then",
        "    local -a commands=(",
        ...commands.map(({ name, description }) => `      '${name}:${description.replaceAll(/[':]/g, "")}'`),
        "    )",
        "    _describe 'command' commands",
        "    return",
        "  fi",
        "  local words_of",
        '  case "${words[2]}" in',
        ...commands.map(({ name, options }) => `    ${name}) words_of="${options.join(" ")}" ;;`),
        "  esac",
        "  compadd -- ${(s: :)words_of}",
        "  _files",
        "}",
        "compdef _bedrock bedrock",
      ].join("\n");
    case "fish":
      return commands
        .flatMap(({ name, description, options }) => [
          `complete -c bedrock -n __fish_use_subcommand -f -a ${name} -d '${description.replaceAll("'", "")}'`,
          ...options.map(
            (option) => `complete -c bedrock -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`,
          ),
        ])
        .join("\n");
  }
}
