import js from "@eslint/js";
import globals from "globals";

const long = { code: 120 };

export default [
  js.configs.recommended,
  { rules: { "max-len": ["error", long], "max-lines": ["error", 300] } },
  {
    files: ["assets/page/**/*.js"],
    languageOptions: {
      sourceType: "commonjs",
      // What the page gives to a component's script, and to the phone's.
      globals: {
        ...globals.browser,
        element: "readonly",
        props: "writable",
        watch: "writable",
        trigger: "writable",
        server: "readonly",
        run: "readonly",
        watched: "readonly",
      },
    },
  },
  {
    files: ["tests/page/js/**/*.cjs"],
    languageOptions: { sourceType: "commonjs", globals: globals.node },
    rules: {
      "max-lines": "off",
      "max-len": ["error", { ...long, ignoreStrings: true }],
      "no-unused-vars": ["error", { varsIgnorePattern: "^_$", argsIgnorePattern: "^_$" }],
    },
  },
];
