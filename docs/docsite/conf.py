# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of Sphinx for the documentation site. ``make docs`` builds it, without network."""

from __future__ import annotations

project = "kubegpu.nodes"
copyright = "2026 kubegpu.nodes contributors"
html_title = "kubegpu.nodes"

extensions = ["myst_parser", "sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
root_doc = "index"
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# docs/README.md is the first page.
exclude_patterns = ["docs/docsite", "docs/README.md"]
# As GitHub makes them.
myst_heading_anchors = 4

html_theme = "sphinx_ansible_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_use_index = False
# Commands with -- and quotes stay as they are.
smartquotes = False
pygments_style = "ansible"
highlight_language = "text"

# The labels of Ansible's documentation that the pages of modules refer to. tests/tools/docsite.py
# writes the inventory; the network is not asked.
intersphinx_mapping = {
    "ansible_devel": ("https://docs.ansible.com/projects/ansible/devel/", "ansible_devel.inv"),
}
