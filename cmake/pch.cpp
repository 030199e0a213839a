// Anchors the precompiled header that all compiler targets share.
namespace cleave {
int pchAnchor;
} // namespace cleave
