import { defineConfig } from "eslint/config";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["node_modules", ".cache", ".bedrock", ".stryker-tmp", "reports", "build"] },
  // A hint, no more: a file is not split for its length alone.
  { files: ["**/*.ts", "**/*.tsx"], ignores: ["test/**"], rules: { "max-lines": ["warn", 400] } },
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      // Leaving a property out by destructuring is how a copy without it is made.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true }],
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { allowDefaultCaseForExhaustiveSwitch: false, requireDefaultForNonUnion: true },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/consistent-type-definitions": "off",
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // Index signatures for recursive types (Json), records elsewhere: both have their place.
      "@typescript-eslint/consistent-indexed-object-style": "off",
    },
  },
  { files: ["web/**/*.{ts,tsx}"], extends: [reactHooks.configs.flat.recommended] },
);
