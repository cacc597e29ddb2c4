/** Owns: the entry of `/docs`: the API's reference, as Swagger UI draws it from `/openapi.json`. */
import swaggerUi from "swagger-ui-dist/swagger-ui-es-bundle.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const followSystem = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
followSystem();
dark.addEventListener("change", followSystem);

const domNode = document.getElementById("reference");
if (domNode !== null) {
  swaggerUi({
    url: "/openapi.json",
    domNode,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    // By default it sends the document's address to a validator elsewhere.
    validatorUrl: null,
  });
}
