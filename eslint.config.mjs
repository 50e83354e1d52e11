import js from "@eslint/js";
import globals from "globals";

const long = { code: 120 };

export default [
  js.configs.recommended,
  { rules: { "max-len": ["error", long], "max-lines": ["error", 300] } },
  {
    files: ["assets/page/**/*.js"],
    languageOptions: {
      globals: globals.browser,
    },
  },
  {
    files: ["tests/page/js/**/*.js"],
    languageOptions: { globals: globals.node },
    rules: {
      "max-lines": "off",
      "max-len": ["error", { ...long, ignoreStrings: true }],
      "no-unused-vars": ["error", { varsIgnorePattern: "^_$", argsIgnorePattern: "^_$" }],
    },
  },
];
